import type { Methods, PkiServiceService } from '@overlay/rpc'
import { caMethods } from './ca-methods.js'
import { certificateMethods } from './certificate-methods.js'
import { enroll } from './enroll.js'
import { enrollmentMethods } from './enrollment-methods.js'
import type { MethodDeps } from './method-deps.js'
import { tokenMethods } from './token-methods.js'

/** All methods of the service. */
export const pkiMethods = (deps: MethodDeps): Methods<PkiServiceService> => ({
  ...caMethods(deps),
  ...certificateMethods(deps),
  ...enrollmentMethods(deps),
  ...tokenMethods(deps),
  enroll: enroll(deps),
})
