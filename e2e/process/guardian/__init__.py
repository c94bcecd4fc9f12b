"""The process that outlives the harness, and the parts that both of them use.

Standard library alone and relative imports alone: the guardian runs this folder as a package
of its own, so that nothing else of the project or its dependencies is loaded into it.
"""
