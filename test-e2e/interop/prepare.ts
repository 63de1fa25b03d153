import { buildCommit, formerRelease } from '../cluster/former-release.js'
import { kustomize } from '../kubernetes/kustomize.js'
import { validator } from '../kubernetes/validate.js'
import { goProgram, goVersions } from './go.js'
import { goRouterProgram } from './go-router.js'
import { jvmProgram } from './jvm.js'
import { cSdk, pythonWith } from './python.js'

// Prepares the foreign programs of the tests before these need them. What fails here is tried again there, and reported.
const formerImage = async () => buildCommit(await formerRelease())
const all: (() => Promise<unknown>)[] = [
  kustomize,
  formerImage,
  validator,
  goRouterProgram,
  jvmProgram,
  () => pythonWith(cSdk),
]
for (const version of goVersions) all.push(() => goProgram(version))
for (const prepare of all) await prepare().catch(() => undefined)
