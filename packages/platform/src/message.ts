import type { Change } from '@overlay/rpc'

const MOST_CHANGES = 500
const MOST_BYTES = 1024 * 1024

/** As many as fit one message, but at least one. */
export function leading(changes: readonly Change[]): Change[] {
  let bytes = 0
  const end = changes.findIndex(({ json }, index) => {
    bytes += json.length
    return index === MOST_CHANGES || (index > 0 && bytes > MOST_BYTES)
  })
  return changes.slice(0, end === -1 ? changes.length : end)
}
