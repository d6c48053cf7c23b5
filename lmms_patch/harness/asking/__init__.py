"""The part that asks the model, some requests at a time, and saves the answers after each portion: a killed run loses one portion at most."""
