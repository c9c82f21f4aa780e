"""Tables of results: for pandas, files and papers, with paired differences."""
