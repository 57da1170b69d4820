"""What a reply means, as learned from examples: probabilities of effects, and the sentence that decides.

`features` describes a reply in numbers, `model` holds the learned weights, `decide` says when they act. `make model`
learns them (training.py) from the examples in fixtures/replies and from labelled threads.
"""
