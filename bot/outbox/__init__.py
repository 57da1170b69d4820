"""The outbox: every mail once. The rows say what is to do; whoever runs may die at any line (DESIGN rule 5).

composing.py puts mail in, sending.py takes it out over transport.py, states.py holds the moves between states.
"""
