"""What the readers of other tools' logs share: core shapes, one growing session, times, files, databases.

Nothing here knows a format. A format's mapper owns a ``SessionLog`` for each session and tells it what a
native record means; numbering, the surface, links and the state between two reads are kept there.
"""
