output "controller_role_arn" {
  description = "With IRSA: the annotation eks.amazonaws.com/role-arn of the controller's service account"
  value       = aws_iam_role.controller.arn
}

output "node_role_name" {
  description = "spec.role of EC2NodeClasses"
  value       = aws_iam_role.node.name
}

output "node_instance_profile_name" {
  description = "spec.instanceProfile of EC2NodeClasses that don't name a role"
  value       = aws_iam_instance_profile.node.name
}

output "queue_name" {
  description = "The controller's setting --interruption-queue"
  value       = aws_sqs_queue.interruption.name
}
