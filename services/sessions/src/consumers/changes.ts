import type { Change } from '@overlay/rpc'

export const isDeleted = ({ json }: Change): boolean => json.length === 0

/** Nothing can depend on the row yet. */
export const isNew = ({ json }: Change): boolean =>
  (JSON.parse(Buffer.from(json).toString()) as { readonly isNew?: boolean }).isNew === true
