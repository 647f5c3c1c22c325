"""The shared part of the applications: data files, two servers, measurements, reports."""
