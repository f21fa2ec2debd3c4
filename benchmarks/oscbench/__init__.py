# What node_compare, net_compare and instructions share: statistics, launching, the bars, tables.
