"""The fault suite: kills, damaged files, bad inputs, full disks, several writers, threads and memory, counted.

``python -m faults`` (``make faults``) runs everything and prints how often something was tried, survived, was refused
with a typed error, ended in an unclear one, or was silently wrong. Nothing may be unclear or wrong.
"""
