"""The outbox: every mail once. The rows say what is to do; whoever runs may die at any line (DESIGN rule 5).

composing/ puts mail in through writer.py. due_mail.py says what is due, sender.py hands it to one of transports/.
recovery.py, delivery_evidence.py and correspondents.py learn what became of it. Every state change goes through
tracker/services/mail_transitions.py.
"""
