import type { X509Certificate } from 'node:crypto'
import { authenticator, type RowOf } from '@overlay/model'
import { type Context, type Fault, invalid, notFound, type Written } from '@overlay/rpc'
import type { WaitForFollowers } from '@overlay/store/change-log'
import {
  bodyIn,
  createdValues,
  type Kind,
  type KindOperations,
  kind,
  newId,
  uniqueFault,
} from '@overlay/store/kind-store'
import { DerError, KeyError, partsOfCertificate, soundKey } from '@overlay/x509'
import sql from 'sql-template-tag'
import { onlyCertificate } from '../credentials/certificates.js'
import type { CredentialDeps } from '../credentials/credential-deps.js'
import { turnOf } from '../credentials/hashing.js'
import { allowedPassword, certificateProof, type Proof, refuseUsername } from '../credentials/proof.js'
import { refuseLockoutByRemoval } from '../store/admins.js'
import { insertAuthenticator, lockAndRefuseSecond, refuseSecond } from '../store/authenticators.js'
import { identityReferences } from '../store/identities.js'
import { endSessionsOfAuthenticator } from '../store/session-ends.js'
import { personOf, subjectById } from '../store/subjects.js'

/** Costly work, hashing and asking for trust, is done before the transaction of the uniform write. */
export const authenticators = (
  deps: CredentialDeps & { readonly waitForFollowers: WaitForFollowers },
): Kind =>
  kind(
    authenticator,
    {
      scope: ({ isAdmin, identityId }) => (isAdmin ? sql`true` : sql`identity_id = ${identityId}`),

      async view(db, rows) {
        const ids = rows.map(({ identityId }) => identityId)
        const referenceOf = await identityReferences(db, ids)
        return rows.map((row) => ({ ...proofMembersOf(row), identity: referenceOf(row.identityId) }))
      },

      async writing(tx, next, before, { context, also }) {
        if (!before) await lockAndRefuseSecond(tx, next.identityId, next.method)
        // differs: sessions that the former password opened end with it
        else if (next.password !== before.password)
          for (const change of await endSessionsOfAuthenticator(tx, next.id, context.caller.apiSessionId))
            also(change)
        return {}
      },

      async deleting(tx, { id, identityId }, { also }) {
        await refuseLockoutByRemoval(tx, identityId, id)
        for (const change of await endSessionsOfAuthenticator(tx, id)) also(change)
      },
    },
    {
      operations: (uniform) => ({
        create: create(deps, uniform),
        // the sessions of the API sessions that the credential has opened end, too
        update: async (request, context) =>
          deps.waitForFollowers(await update(deps, uniform)(request, context), context, ['sessions']),
        delete: async (request, context) =>
          deps.waitForFollowers(await uniform.delete(request, context), context, ['sessions']),
      }),
    },
  )

/** wire: answers leave out members of the other method, and isIssuedByNetwork if it is false. */
function proofMembersOf(row: RowOf<typeof authenticator>): object {
  const { method, username, certPem, fingerprint, isIssuedByNetwork } = row
  if (method === 'updb') return { username }
  return { certPem, fingerprint, ...(isIssuedByNetwork && { isIssuedByNetwork }) }
}

type Body = Readonly<Record<string, unknown>>

const bytesOf = (body: Body): Buffer => Buffer.from(JSON.stringify(body))

const create =
  (deps: CredentialDeps, uniform: KindOperations): KindOperations['create'] =>
  async (request, context) => {
    const { db } = deps.changeLog
    const body = bodyIn(request.json)
    refuseMissing(body)
    const { method, identityId } = body as { method: string; identityId: string }
    const person = await personOf(db, identityId)
    if (!person) throw notFound('identity', identityId)
    await refuseSecond(db, person, method)
    if (method === 'cert') return createCertificate(deps, body, context)
    const { username, password } = body as { username: string; password: string }
    refuseUsername(username)
    const hash = await deps.hashing.hash(allowedPassword(password, person.passwordRules), turnOf(context))
    const json = bytesOf({ ...body, username, password: hash, certPem: null })
    return uniform.create({ ...request, json }, context)
  }

async function createCertificate(deps: CredentialDeps, body: Body, context: Context): Promise<Written> {
  const [id, identityId] = [newId(authenticator.ids), String(body.identityId)]
  const proof = await trustedProof(deps, String(body.certPem), context)
  const { values, tags } = createdValues(authenticator, body)
  const row = { ...values, id, identityId, enrollmentId: null, isIssuedByNetwork: false, tags, ...proof }
  try {
    const { position } = await deps.changeLog.write(context, async (tx) => {
      await lockAndRefuseSecond(tx, identityId, proof.method)
      const change = await insertAuthenticator(tx, row)
      if (!change) throw notTrusted() // its authority has been deleted meanwhile
      return { result: id, changes: [change] }
    })
    return { id, position }
  } catch (err) {
    throw uniqueFault(authenticator, err) ?? err
  }
}

async function trustedProof(
  { trust, chains, authorities }: CredentialDeps,
  certPem: string,
  context: Context,
): Promise<Proof> {
  const leaf = onlyCertificate(certPem)
  refuseWeakKey(leaf)
  const begin = new Date(leaf.validFrom)
  const trusted = await trust.certificates()
  if (await chains.find([leaf], trusted, context, begin)) return certificateProof({ leaf })
  const cas = (await authorities.all(context.signal)).filter(({ isVerified }) => isVerified)
  const ca = await authorities.issuerOf(cas, [leaf], context, begin)
  if (!ca) throw notTrusted()
  return certificateProof({ leaf, ca })
}

const update =
  ({ changeLog, hashing }: CredentialDeps, uniform: KindOperations): KindOperations['update'] =>
  async (request, context) => {
    const { mask } = request
    const subject = await subjectById(changeLog.db, request.ref?.id ?? '')
    if (!subject) return uniform.update(request, context) // refuses
    // wire: an update of a certificate answers 200; username and password in it are ignored
    if (subject.method === 'cert') return uniform.update({ ...request, mask: withoutProof(mask) }, context)
    const body = bodyIn(request.json) as { username?: string | null; password?: string | null }
    if (mask.includes('username')) refuseUsername(body.username ?? '')
    if (!mask.includes('password')) return uniform.update(request, context)
    const allowed = allowedPassword(body.password ?? '', subject.passwordRules)
    const password = await hashing.hash(allowed, turnOf(context))
    return uniform.update({ ...request, json: bytesOf({ ...body, password }) }, context)
  }

const withoutProof = (mask: readonly string[]): string[] =>
  mask.filter((name) => name !== 'username' && name !== 'password')

/** differs: the original takes keys of any strength. */
function refuseWeakKey(leaf: X509Certificate): void {
  try {
    soundKey(partsOfCertificate(leaf).publicKey)
  } catch (err) {
    if (!(err instanceof KeyError || err instanceof DerError)) throw err
    throw invalid('certPem', err.message, '')
  }
}

/** differs: a field error, not a server error. */
const notTrusted = (): Fault => invalid('certPem', 'the certificate does not lead to a trusted authority', '')

const proofMembers: Readonly<Record<string, readonly string[]>> = {
  updb: ['username', 'password'],
  cert: ['certPem'],
}

function refuseMissing(body: Body): void {
  const members = proofMembers[String(body.method)]
  if (!members) throw invalid('method', 'method must be updb or cert')
  for (const member of members) if (!body[member]) throw invalid(member, `${member} is required`, '')
}
