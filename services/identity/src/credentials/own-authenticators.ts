import { type Context, Fault, notFound } from '@overlay/rpc'
import type { Db } from '@overlay/store/postgres'
import { type Authenticator, authenticatorById } from '../store/authenticators.js'
import { type Subject, subjectById } from '../store/subjects.js'

/** An authenticator as answers show it. */
export interface OwnAuthenticator {
  readonly id: string
}

/** Links of the self-service in place of those of the collection. */
export const withOwnLinks = (shown: OwnAuthenticator): object => ({
  ...shown,
  _links: { self: { href: `./current-identity/authenticators/${shown.id}` } },
})

/** An authenticator of the caller, also of an admin. */
export async function ownSubject(db: Db, id: string, { caller }: Context): Promise<Subject> {
  const subject = await subjectById(db, id)
  if (subject?.identityId !== caller.identityId) throw notFound('authenticator', id)
  return subject
}

/** A certificate that the network has issued to the caller. The order of the checks is that of the original. */
export async function issuedToCaller(db: Db, id: string, { caller }: Context): Promise<Authenticator> {
  const stored = await authenticatorById(db, id)
  if (!stored) throw notFound('authenticator', id)
  if (stored.method !== 'cert') throw new Fault('CAN_NOT_UPDATE_AUTHENTICATOR')
  if (stored.identityId !== caller.identityId) throw new Fault('UNAUTHORIZED') // wire: no 404 here
  if (!stored.isIssuedByNetwork || !stored.certPem) throw new Fault('CAN_NOT_UPDATE_AUTHENTICATOR')
  return stored
}
