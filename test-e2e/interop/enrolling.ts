import { join } from 'node:path'
import { type Application, startApplication } from './application.js'
import { type GoVersion, goProgram, goVersions } from './go.js'
import { jvmProgram } from './jvm.js'
import { cSdk, pythonWith } from './python.js'

export type Sdk = `go-${GoVersion}` | 'c' | 'jvm'
export const sdks: readonly Sdk[] = [...goVersions.map((version) => `go-${version}` as const), 'c', 'jvm']

/** The input of an application. It stores what it enrolls beside the token. */
export interface Command {
  /** `login` reads what is stored. `continue` uses the login that is open, if the SDK can. */
  readonly action: 'enroll' | 'login' | 'continue'
  /** File of the enrollment token. */
  readonly token: string
  /** A service that the identity should receive. */
  readonly service: string
  /** Of the key that the SDK makes. */
  readonly keyAlg?: 'RSA' | 'EC'
  /** In place of a key that the SDK makes. */
  readonly keyFile?: string
  readonly certFile?: string
  readonly username?: string
  readonly password?: string
}

/** An identity after a command. The C SDK does not know its name. */
export interface Answer {
  readonly error?: string
  readonly name?: string
  readonly services?: readonly string[]
}

/** An application on an SDK, which performs one command after the other. */
export interface EnrollingSdk extends AsyncDisposable {
  perform(command: Command): Promise<Answer>
  log: Application['log']
}

/** Builds and starts applications. Those that cannot be prepared here are missing, but fail the tests of CI. */
export async function startSdks(): Promise<ReadonlyMap<Sdk, EnrollingSdk>> {
  const running = new Map<Sdk, EnrollingSdk>()
  const outcomes = await Promise.allSettled(
    sdks.map(async (sdk) => {
      const [command, ...args] = await commandOf(sdk)
      running.set(sdk, enrollingSdk(startApplication(command, args, { timeoutMs: 1_200_000 })))
    }),
  )
  for (const outcome of outcomes) {
    if (outcome.status === 'fulfilled') continue
    if (process.env.CI === 'true') throw outcome.reason
    console.warn(`skipping tests, because an SDK cannot be prepared: ${outcome.reason}`)
  }
  return running
}

async function commandOf(sdk: Sdk): Promise<[string, ...string[]]> {
  if (sdk === 'jvm') return jvmProgram()
  if (sdk === 'c') return [await pythonWith(cSdk), join(import.meta.dirname, 'c-sdk-enroll.py')]
  const version = goVersions.find((version) => sdk === `go-${version}`)
  if (!version) throw new Error(`unknown SDK ${sdk}`)
  return [await goProgram(version), 'enroll']
}

/** Commands of tests that run at the same time wait for each other. */
function enrollingSdk(application: Application): EnrollingSdk {
  let last: Promise<unknown> = Promise.resolve()
  return {
    perform(command) {
      const answer = last.then(() => {
        application.write(JSON.stringify(command))
        return application.next<Answer>()
      })
      last = answer.catch(() => undefined)
      return answer
    },
    log: application.log,
    [Symbol.asyncDispose]: () => application[Symbol.asyncDispose](),
  }
}
