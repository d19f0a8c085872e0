"""What is done for a release: archives that anyone can build again bit for bit, their parts, the tested versions."""
