"""A project laid out as a package whose modules are named data, model, utils and train.

    cd package_layout && python -m pkg.train --steps 60
"""
