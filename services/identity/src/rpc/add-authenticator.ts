import { X509Certificate } from 'node:crypto'
import { authenticator } from '@overlay/model'
import { columnsOf, type History, newId, plainOf, rowOf, type Tx, uniqueFault } from '@overlay/platform'
import { Fault, type IdentityServiceService, type Methods, notFound } from '@overlay/rpc'
import sql from 'sql-template-tag'
import { fingerprintOf } from '../domain/chain.js'
import { personOf } from '../store/subjects.js'
import { checkRules } from './authenticators.js'
import type { Hashing } from './hashing.js'

type Add = Methods<IdentityServiceService>['addAuthenticator']
type Request = Parameters<Add>[0]

interface Proof {
  readonly method: 'updb' | 'cert'
  readonly username: string | null
  readonly password: string | null
  readonly certPem: string | null
  readonly fingerprint: string | null
}

/** The last step of an enrollment. The first call with an enrollment's id wins; the others hear what it made. */
export function authenticatorAddition(history: History, hashing: Hashing): Add {
  return async (request, context) => {
    const known = await addedBy(history, request.enrollmentId)
    if (known) return known
    const proof = await proofOf(history, hashing, request)
    const id = newId('short')
    try {
      const { result, position } = await history.write(context, async (tx) => {
        const row = await insert(tx, id, request, proof)
        if (!row) return { result: undefined, changes: [] }
        const plain = plainOf(authenticator, rowOf(authenticator, row))
        const change = { kind: authenticator.kind, id, before: null, after: plain, told: plain }
        return { result: id, changes: [change] }
      })
      if (result) return { authenticatorId: id, created: true, position }
    } catch (err) {
      throw conflictOf(err) ?? err
    }
    const first = await addedBy(history, request.enrollmentId)
    if (!first) throw notFound('identity', request.identityId) // gone while it enrolled
    return first
  }
}

async function addedBy(history: History, enrollmentId: string) {
  const { rows } = await history.db.query<{ id: string }>(
    sql`select id from authenticator where enrollment_id = ${enrollmentId}`,
  )
  return rows[0] && { authenticatorId: rows[0].id, created: false, position: await history.head() }
}

async function proofOf(history: History, hashing: Hashing, request: Request): Promise<Proof> {
  const { identityId, certPem, username, password } = request
  if (certPem !== '') {
    const fingerprint = fingerprintOf(new X509Certificate(certPem))
    return { method: 'cert', username: null, password: null, certPem, fingerprint }
  }
  const person = await personOf(history.db, identityId)
  if (!person) throw notFound('identity', identityId)
  checkRules(username, password, person.passwordRules)
  return {
    method: 'updb',
    username,
    password: await hashing.hash(password),
    certPem: null,
    fingerprint: null,
  }
}

async function insert(tx: Tx, id: string, request: Request, proof: Proof) {
  const { rows } = await tx.query(sql`
    insert into authenticator (id, method, identity_id, username, password, cert_pem, fingerprint,
                               is_issued_by_network, enrollment_id)
    select ${id}, ${proof.method}, identity.id, ${proof.username}, ${proof.password}, ${proof.certPem},
           ${proof.fingerprint}, ${request.isIssuedByNetwork}, ${request.enrollmentId}
      from identity where id = ${request.identityId} for key share
        on conflict (enrollment_id) do nothing
 returning ${columnsOf(authenticator)}`)
  return rows[0]
}

/** The certificate, or the name, that somebody else has. */
function conflictOf(err: unknown): Fault | undefined {
  const fault = uniqueFault(authenticator, err)
  const field = typeof fault?.detail === 'object' ? fault.detail.field : undefined
  return field === 'fingerprint' ? new Fault('CERT_IN_USE') : fault
}
