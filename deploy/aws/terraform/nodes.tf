# Nodes act as this role. EC2NodeClasses name it in spec.role.
resource "aws_iam_role" "node" {
  name = "KarpenterNodeRole-${var.cluster_name}"
  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [
      {
        Effect    = "Allow"
        Principal = { Service = "ec2.${data.aws_partition.current.dns_suffix}" }
        Action    = "sts:AssumeRole"
      }
    ]
  })
}

resource "aws_iam_role_policy_attachment" "node" {
  for_each = toset([
    "AmazonEKSWorkerNodePolicy",
    "AmazonEKS_CNI_Policy",
    "AmazonEC2ContainerRegistryPullOnly",
    "AmazonSSMManagedInstanceCore",
  ])
  role       = aws_iam_role.node.name
  policy_arn = "arn:${local.partition}:iam::aws:policy/${each.value}"
}

# For EC2NodeClasses that name spec.instanceProfile. For those with spec.role the controller makes its own.
resource "aws_iam_instance_profile" "node" {
  name = "KarpenterNodeInstanceProfile-${var.cluster_name}"
  role = aws_iam_role.node.name
}

resource "aws_eks_access_entry" "node" {
  count         = var.access_entry == "None" ? 0 : 1
  cluster_name  = var.cluster_name
  principal_arn = aws_iam_role.node.arn
  type          = var.access_entry
}
