# Shared by node_compare, net_compare and instructions: statistics, launching, bars, tables.
