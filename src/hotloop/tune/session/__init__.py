"""What survives a kill: finished work is stored under a key and looked up on resume.

In: the user's command. Out: a session, new or resumed, and a ledger of what is finished.
"""
