# What is older than five minutes helps nobody: a spot instance is gone two minutes after its warning.
resource "aws_sqs_queue" "interruption" {
  name                      = var.cluster_name
  message_retention_seconds = 300
  sqs_managed_sse_enabled   = true
}

resource "aws_sqs_queue_policy" "interruption" {
  queue_url = aws_sqs_queue.interruption.url
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [
      {
        Sid       = "LetEventBridgeWrite"
        Effect    = "Allow"
        Principal = { Service = "events.amazonaws.com" }
        Action    = "sqs:SendMessage"
        Resource  = aws_sqs_queue.interruption.arn
        Condition = {
          StringEquals = { "aws:SourceAccount" = local.account }
          ArnLike      = { "aws:SourceArn" = "arn:${local.partition}:events:${local.region}:${local.account}:rule/*" }
        }
      },
      {
        Sid       = "RefuseWhatIsNotEncrypted"
        Effect    = "Deny"
        Principal = "*"
        Action    = "sqs:*"
        Resource  = aws_sqs_queue.interruption.arn
        Condition = { Bool = { "aws:SecureTransport" = "false" } }
      }
    ]
  })
}

locals {
  events = {
    warning = {
      source = ["aws.ec2"]
      detail-type = [
        "EC2 Spot Instance Interruption Warning",
        "EC2 Instance Rebalance Recommendation",
        "EC2 Capacity Reservation Instance Interruption Warning",
      ]
    }
    state = {
      source      = ["aws.ec2"]
      detail-type = ["EC2 Instance State-change Notification"]
      detail      = { state = ["stopping", "stopped", "shutting-down", "terminated"] }
    }
    health = {
      source      = ["aws.health"]
      detail-type = ["AWS Health Event"]
      detail      = { service = ["EC2"], eventTypeCategory = ["scheduledChange"] }
    }
  }
}

resource "aws_cloudwatch_event_rule" "interruption" {
  for_each      = local.events
  name_prefix   = "${substr(var.cluster_name, 0, 28)}-${each.key}-"
  event_pattern = jsonencode(each.value)
}

resource "aws_cloudwatch_event_target" "interruption" {
  for_each  = local.events
  rule      = aws_cloudwatch_event_rule.interruption[each.key].name
  target_id = "queue"
  arn       = aws_sqs_queue.interruption.arn
}
