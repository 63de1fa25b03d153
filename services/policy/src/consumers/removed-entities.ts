import type { Change } from '@overlay/rpc'

export const goneIn = (changes: readonly Change[]): string[] =>
  changes.filter(({ json }) => json.length === 0).map(({ id }) => id)
