# What node_compare and instructions share: statistics, launching, the bars, tables.
