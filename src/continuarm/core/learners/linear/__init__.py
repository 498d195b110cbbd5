"""What the learners of one linear model share: functions of the context, and their triangle."""
