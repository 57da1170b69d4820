"""What awaits whoever is signed in."""
