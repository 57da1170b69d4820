"""Where the outside pushes in. The pages' urls include this room by its name only."""
