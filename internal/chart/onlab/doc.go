// Package onlab has the tests that install the charts on a lab whose system nodes run the chart's pods as processes:
// with the rights of their service account, their environment and their probes. It stands beside the building.
package onlab
