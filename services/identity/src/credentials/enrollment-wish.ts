import { randomUUID } from 'node:crypto'
import { newId } from '@overlay/platform/kind-store'
import { type EnrollmentWish, invalid } from '@overlay/rpc'

/** As the body of a create says it. */
export interface Asked {
  readonly ott?: boolean
  readonly ottca?: string
  readonly updb?: string
}

/** The enrollment that is asked for, with the id and the token that it will have. */
export function wishFor(identityId: string, asked: Asked | null | undefined): EnrollmentWish | undefined {
  // wire: one is honoured, in this order
  if (asked?.ott) return wish({ method: 'ott', identityId })
  if (asked?.ottca) return wish({ method: 'ottca', identityId, caId: asked.ottca })
  if (asked?.updb === '') throw invalid('enrollment.updb', 'a username is required', '')
  if (asked?.updb) return wish({ method: 'updb', identityId, username: asked.updb })
  return undefined
}

export const wish = (given: Partial<EnrollmentWish>): EnrollmentWish => ({
  id: newId('short'),
  token: randomUUID(),
  method: '',
  identityId: '',
  edgeRouterId: '',
  transitRouterId: '',
  caId: '',
  username: '',
  expiresAtMs: 0, // as long as pki gives
  ...given,
})
