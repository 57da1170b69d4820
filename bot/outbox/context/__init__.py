"""What composing needs from the database: reports, their circumstances, and the patch mail they answer."""
