"""Texts for people: English, numbers, cells of a spreadsheet, web addresses."""
