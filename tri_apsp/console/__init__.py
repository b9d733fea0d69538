"""What all command lines share: parser, exit statuses, options, output, progress, and the facts of
the machine.
"""
