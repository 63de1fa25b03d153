import type { X509Certificate } from 'node:crypto'
import { authenticator } from '@overlay/model'
import type { ChangeLog } from '@overlay/platform/change-log'
import { newId, tagsOf, uniqueFault } from '@overlay/platform/kind-store'
import {
  type Context,
  type EntityServiceService,
  type Fault,
  invalid,
  type Methods,
  notFound,
  type Written,
} from '@overlay/rpc'
import { DerError, KeyError, partsOfCertificate, soundKey } from '@overlay/x509'
import type { Authorities } from '../credentials/authorities.js'
import { certificateProof, type Proof } from '../credentials/certificate-proof.js'
import { onlyCertificate } from '../credentials/certificates.js'
import type { Hashing } from '../credentials/hashing.js'
import type { Trust } from '../credentials/trust.js'
import { chainOf } from '../domain/chain.js'
import { brokenRule, type PasswordRules } from '../domain/passwords.js'
import { turnOf } from '../login/password-attempt.js'
import { insertAuthenticator, mayHaveOneMore, refuseSecond } from '../store/authenticators.js'
import { personOf, subjectById } from '../store/subjects.js'

type Uniform = Pick<Methods<EntityServiceService>, 'create' | 'update'>
type Body = Readonly<Record<string, unknown>>

export interface Parts {
  readonly changeLog: ChangeLog
  readonly hashing: Hashing
  readonly trust: Trust
  readonly authorities: Authorities
}

/** By an admin. What is costly (hashing, asking for trust) is done before the transaction of the uniform write. */
export function authenticatorWrites(
  { changeLog, hashing, trust, authorities }: Parts,
  uniform: Uniform,
): Uniform {
  const passwordProof = async (body: Body, rules: PasswordRules, context: Context): Promise<object> => {
    const { username, password } = body as { username: string; password: string }
    checkRules(username, password, rules)
    return { username, password: await hashing.hash(password, turnOf(context)), certPem: null }
  }

  const trustedProof = async ({ certPem }: Body, { signal }: Context): Promise<Proof> => {
    const leaf = onlyCertificate(String(certPem))
    refuseWeakKey(leaf)
    const begin = new Date(leaf.validFrom)
    if (chainOf([leaf], await trust.certificates(), begin)) return certificateProof({ leaf })
    const cas = (await authorities.all(signal)).filter(({ isVerified }) => isVerified)
    const vouched = authorities.vouching(cas, [leaf], begin)
    if (!vouched) throw leadsNowhere()
    return certificateProof({ leaf, ca: vouched.ca })
  }

  const createCertificate = async (body: Body, context: Context): Promise<Written> => {
    const [id, identityId] = [newId(authenticator.ids), String(body.identityId)]
    const proof = await trustedProof(body, context)
    const tags = tagsOf(body.tags)
    const made = { id, identityId, enrollmentId: null, isIssuedByNetwork: false, tags, ...proof }
    try {
      const { position } = await changeLog.write(context, async (tx) => {
        await mayHaveOneMore(tx, identityId, proof.method)
        const change = await insertAuthenticator(tx, made)
        if (!change) throw leadsNowhere() // its authority has gone meanwhile
        return { result: id, changes: [change] }
      })
      return { id, position }
    } catch (err) {
      throw uniqueFault(authenticator, err) ?? err
    }
  }

  return {
    async create(request, context) {
      const body = bodyIn(request.json)
      const { method, identityId } = body as { method: string; identityId: string }
      refuseMissing(body)
      const person = await personOf(changeLog.db, identityId)
      if (!person) throw notFound('identity', identityId)
      await refuseSecond(changeLog.db, person, method)
      if (method === 'cert') return createCertificate(body, context)
      const proof = await passwordProof(body, person.passwordRules, context)
      return uniform.create({ ...request, json: bytesOf({ ...body, ...proof }) }, context)
    },

    async update(request, context) {
      const subject = await subjectById(changeLog.db, request.ref?.id ?? '')
      if (!subject) return uniform.update(request, context) // says that there is none
      // wire: of a certificate nothing changes, and nobody is told
      if (subject.method === 'cert')
        return uniform.update({ ...request, mask: others(request.mask) }, context)
      const body = bodyIn(request.json) as { username?: string | null; password?: string | null }
      const username = request.mask.includes('username') ? (body.username ?? '') : undefined
      const password = request.mask.includes('password') ? (body.password ?? '') : undefined
      checkRules(username, password, subject.passwordRules)
      const hashed = password === undefined ? {} : { password: await hashing.hash(password, turnOf(context)) }
      return uniform.update({ ...request, json: bytesOf({ ...body, ...hashed }) }, context)
    },
  }
}

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
const leadsNowhere = (): Fault =>
  invalid('certPem', 'the certificate does not lead to a trusted authority', '')

const others = (mask: readonly string[]): string[] =>
  mask.filter((name) => name !== 'username' && name !== 'password')

export const bodyIn = (json: Uint8Array): Body => JSON.parse(Buffer.from(json).toString()) as Body
const bytesOf = (body: Body): Buffer => Buffer.from(JSON.stringify(body))

const proofs: Readonly<Record<string, readonly string[]>> = {
  updb: ['username', 'password'],
  cert: ['certPem'],
}

function refuseMissing(body: Body): void {
  const members = proofs[String(body.method)]
  if (!members) throw invalid('method', 'method must be updb or cert')
  for (const member of members) if (!body[member]) throw invalid(member, `${member} is required`, '')
}

/** differs: a password is never sent back. */
export function checkRules(
  username: string | undefined,
  password: string | undefined,
  rules: PasswordRules,
): void {
  const broken = brokenRule(username, password, rules)
  if (broken) throw invalid(broken.field, broken.reason, broken.field === 'username' ? username : '')
}
