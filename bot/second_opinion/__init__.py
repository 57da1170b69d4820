"""Second opinions of a language model on replies that the classifier is unsure of; off unless set."""
