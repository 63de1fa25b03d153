import { authenticator } from '@overlay/model'
import type { ChangeLog } from '@overlay/platform/change-log'
import { newId, uniqueFault } from '@overlay/platform/kind-store'
import { type Context, Fault, type IdentityServiceService, type Methods, notFound } from '@overlay/rpc'
import sql from 'sql-template-tag'
import type { Authorities } from '../credentials/authorities.js'
import { certificateProof, noProof, type Proof, vouchedFor } from '../credentials/certificate-proof.js'
import type { Hashing } from '../credentials/hashing.js'
import { fingerprintOfPem } from '../domain/chain.js'
import { checkRules } from '../kinds/write-authenticator.js'
import { turnOf } from '../login/password-attempt.js'
import { authenticatorAdder } from '../store/authenticators.js'
import { personOf } from '../store/subjects.js'

type Add = Methods<IdentityServiceService>['addAuthenticator']
type Request = Parameters<Add>[0]

interface Parts {
  readonly changeLog: ChangeLog
  readonly hashing: Hashing
  readonly authorities: Authorities
}

/** The last step of an enrollment. The first call with an enrollment's id wins; the others hear what it made. */
export function authenticatorAddition(parts: Parts): Add {
  const { changeLog } = parts
  const add = authenticatorAdder(changeLog)
  return async (request, context) => {
    const { identityId, enrollmentId, isIssuedByNetwork } = request
    // what costs next to nothing is tried at once
    const known = isIssuedByNetwork ? undefined : await addedBy(changeLog, enrollmentId)
    if (known) return known
    const id = newId('short')
    const proof = await proofOf(parts, request, context)
    const added = { id, identityId, enrollmentId, isIssuedByNetwork, tags: {}, ...proof }
    try {
      const position = await add({ ...added, by: context })
      if (position) return { authenticatorId: id, created: true, position }
    } catch (err) {
      throw conflictOf(err, proof) ?? err
    }
    const first = await addedBy(changeLog, enrollmentId)
    if (!first) throw notFound('identity', identityId) // it, or the authority, has gone meanwhile
    return first
  }
}

async function addedBy(changeLog: ChangeLog, enrollmentId: string) {
  const { rows } = await changeLog.db.query<{ id: string }>(
    sql`select id from authenticator where enrollment_id = ${enrollmentId}`,
  )
  return rows[0] && { authenticatorId: rows[0].id, created: false, position: await changeLog.head() }
}

async function proofOf(parts: Parts, request: Request, context: Context): Promise<Proof> {
  const { identityId, caId, certPem, username, password, peerCertificates } = request
  if (caId !== '') {
    const cas = (await parts.authorities.all(context.signal)).filter(({ id }) => id === caId)
    return certificateProof(vouchedFor(parts.authorities, cas, peerCertificates))
  }
  if (certPem !== '') return { ...noProof, method: 'cert', certPem, fingerprint: fingerprintOfPem(certPem) }
  const person = await personOf(parts.changeLog.db, identityId)
  if (!person) throw notFound('identity', identityId)
  checkRules(username, password, person.passwordRules)
  return {
    ...noProof,
    method: 'updb',
    username,
    password: await parts.hashing.hash(password, turnOf(context, username)),
  }
}

/** The certificate, or the name, that somebody else has. */
function conflictOf(err: unknown, { fingerprint }: Proof): Fault | undefined {
  const fault = uniqueFault(authenticator, err)
  const field = typeof fault?.detail === 'object' ? fault.detail.field : undefined
  return field === 'fingerprint' ? new Fault('CERT_IN_USE', undefined, err, { fingerprint }) : fault
}
