"""The outbox: every mail once. The rows say what is to do; whoever runs may die at any line (DESIGN rule 5).

composing.py, further.py and answering.py put mail in. queue.py says what is due, sending.py takes it out by one of the
ways of transport/, states.py and tracker/services/mail_transitions.py hold the moves between states, telling.py tells reports of it.
doubts.py, testimony.py, refusals.py and correspondents.py learn what became of it.
"""
