import { authenticator, identity } from '@overlay/model'
import type { ChangeLog, WaitForFollowers } from '@overlay/platform/change-log'
import { entityService, type Names } from '@overlay/platform/kind-store'
import { type EntityServiceService, invalid, type Methods } from '@overlay/rpc'
import type { Authorities } from '../credentials/authorities.js'
import type { Enrollments } from '../credentials/enrollments.js'
import type { Hashing } from '../credentials/hashing.js'
import type { Trust } from '../credentials/trust.js'
import { countSecondFactors } from '../store/second-factors.js'
import { personOf } from '../store/subjects.js'
import { apiSessions, sessionCertificates } from './api-session.js'
import { authPolicies, identityTypes } from './auth-policy.js'
import { authenticators } from './authenticator.js'
import { identityCreation } from './create-identity.js'
import { externalJwtSigners } from './external-jwt-signer.js'
import { hostingOf } from './hosting.js'
import { identities } from './identity.js'
import type { Others } from './identity-view.js'
import { authenticatorWrites, bodyIn } from './write-authenticator.js'

export interface Parts {
  readonly changeLog: ChangeLog
  readonly hashing: Hashing
  readonly trust: Trust
  readonly authorities: Authorities
  readonly others: Others
  /** Of services. */
  readonly names: Names
  readonly pki: Enrollments
  /** After an identity is gone: its enrollments, its place in policies, its sessions. */
  readonly settled: WaitForFollowers
}

type Entities = Methods<EntityServiceService>

/** The uniform operations, and what of them is not uniform: creates that are gathered, passwords that are hashed. */
export function entities(parts: Parts): Entities {
  const { changeLog, others, names, pki } = parts
  const kinds = [
    identities(others),
    authenticators,
    apiSessions,
    sessionCertificates,
    authPolicies,
    externalJwtSigners,
    identityTypes,
  ]
  const uniform = entityService({ changeLog, kinds, names, counts: { 'second-factors': countSecondFactors } })
  const createIdentity = identityCreation(changeLog, pki, names)
  const authenticatorsOf = authenticatorWrites(parts, uniform)

  return {
    ...uniform,

    create(request, context) {
      if (request.kind === identity.kind) return createIdentity(request, context)
      if (request.kind === authenticator.kind) return authenticatorsOf.create(request, context)
      return uniform.create(request, context)
    },

    async delete(request, context) {
      const written = await uniform.delete(request, context)
      return request.kind === identity.kind ? parts.settled(written, context) : written
    },

    async update(request, context) {
      if (request.ref?.kind === authenticator.kind) return authenticatorsOf.update(request, context)
      if (request.ref?.kind !== identity.kind) return uniform.update(request, context)
      const body = bodyIn(request.json)
      if (body.type === 'Router' && isReplace(request.mask)) await refuseRouter(changeLog, request.ref.id)
      const json = Buffer.from(JSON.stringify({ ...body, ...hostingOf(body) }))
      return uniform.update({ ...request, json }, context)
    },
  }
}

const replaced = Object.entries(identity.fields).flatMap(([name, { write }]) =>
  write[1] === '-' ? [] : [name],
)
const isReplace = (mask: readonly string[]): boolean => replaced.every((name) => mask.includes(name))

/** wire: refused on replace, ignored on patch. */
async function refuseRouter({ db }: ChangeLog, id: string): Promise<void> {
  const person = await personOf(db, id)
  if (person && person.identityType !== 'Router')
    throw invalid('typeId', 'an identity can not become that of a router', 'Router')
}
