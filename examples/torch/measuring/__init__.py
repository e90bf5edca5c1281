# SPDX-License-Identifier: Apache-2.0
"""What measures a machine, and holds runs against predictions: for profile_stage.py, fidelity.py and compare.py. Training needs none of it."""
