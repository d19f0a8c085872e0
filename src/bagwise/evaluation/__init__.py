"""How good an answer is: cross-validation of bag classifiers, and CorLoc and its kin for object discovery."""
