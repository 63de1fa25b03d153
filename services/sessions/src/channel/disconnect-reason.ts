import type { ChannelClosed } from '@overlay/channel'

const reasons: Readonly<Record<string, string>> = {
  'the peer does not read': 'stalled',
  'no answer to heartbeats': 'unresponsive',
  replaced: 'replaced',
  stopping: 'stopping',
  disabled: 'revoked',
  'unknown-router': 'revoked',
  'not-enrolled': 'revoked',
}

/** Bounded, for a metric. */
export function disconnectReason({ message, cause }: ChannelClosed): string {
  const isMalformed = cause instanceof Error && !('code' in cause) // errors of the system have a code
  return isMalformed ? 'malformed' : (reasons[message] ?? 'closed')
}
