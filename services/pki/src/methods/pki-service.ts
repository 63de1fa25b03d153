import type { Consumer } from '@overlay/platform/change-log'
import { required } from '@overlay/platform/kind-store'
import {
  type Context,
  type EnrollRequest,
  type EnrollResponse,
  Fault,
  type Methods,
  type PkiServiceService,
} from '@overlay/rpc'
import type { Ahead } from '../consumers/eager-steps.js'
import { type Creating, check, refresh } from '../kinds/create-enrollment.js'
import { findCa } from '../store/cas.js'
import { enrollmentCreator } from '../store/enrollments.js'
import { type Issuing, issue } from './issue.js'
import { verification } from './verify-ca.js'

export interface Serving extends Creating, Issuing {
  /** Wishes travel in the changes of identity. */
  readonly identityFollowed: Pick<Consumer, 'waitFor'>
  readonly granted: Ahead
  enroll(request: EnrollRequest, context: Context): Promise<EnrollResponse>
}

export function pkiService(serving: Serving): Methods<PkiServiceService> {
  const { granted, grants, changeLog, identityFollowed, keyring, now } = serving
  const untilFollowing = firstLook(identityFollowed)
  const create = enrollmentCreator(changeLog)

  return {
    async getServerCertificate() {
      const { server, intermediates } = await keyring()
      return { keyPem: server.privateKey, chainPem: server.pem + intermediates, fingerprint: server.keyId }
    },

    async getTrustBundle() {
      const { bundle, trustDomain, bundleId } = await keyring()
      return { pems: [...bundle], trustDomain, keyId: bundleId }
    },

    async checkEnrollment(wish, { signal }) {
      await untilFollowing(signal)
      await check(serving, wish)
      return {}
    },

    async grantEnrollment({ wish, position }, context) {
      const [wanted, at] = [required(wish), required(position)]
      const isMade = await granted.doing(wanted.id, async () =>
        create(await grants.made(wanted), at, context),
      )
      if (!isMade) await identityFollowed.waitFor(at, context.signal)
      return {}
    },

    refreshEnrollment: ({ id, expiresAtMs }, context) => refresh(serving, id, expiresAtMs, context),

    verifyCa: verification(changeLog, now),

    async getCaJwt({ id }) {
      if (!(await findCa(changeLog.db, id))) throw new Fault('NOT_FOUND') // wire: without a cause
      return { jwt: await grants.forCa(id) }
    },

    enroll: serving.enroll,
    ...issue(serving),
  }
}

/** Wishes travel in changes: nobody may make one before this replica has begun to follow them. */
function firstLook(following: Pick<Consumer, 'waitFor'>): (signal: AbortSignal) => Promise<void> {
  const anywhere = { timeline: '', number: 0 } // of no timeline: met by the first look at the owner
  let isFollowing = false
  return async (signal) => {
    if (isFollowing) return
    await following.waitFor(anywhere, signal)
    isFollowing = true
  }
}
