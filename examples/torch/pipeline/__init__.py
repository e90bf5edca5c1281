# SPDX-License-Identifier: Apache-2.0
"""What trains by a plan: a model cut into stages, and what runs, records and watches them. It uses nothing of measuring."""
