"""What machines cost: catalogues of offers, spot prices over time, the carbon of a grid."""
