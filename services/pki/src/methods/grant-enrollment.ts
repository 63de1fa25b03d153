import { required } from '@overlay/store/kind-store'
import type { Deps, PkiMethods } from './deps.js'

/** Waits for the enrollment that an identity of 0.1.0 has requested. Unused since 0.2.0: identity waits for `Reach`. */
export const grantEnrollment =
  ({ consumers }: Deps): PkiMethods['grantEnrollment'] =>
  async ({ position }, { signal }) => {
    await consumers.identity.waitFor(required(position), signal)
    return {}
  }
