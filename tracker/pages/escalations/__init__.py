"""What a release manager has to push: reports that nothing moves by itself."""
