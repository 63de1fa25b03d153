import { readArguments, usage } from './arguments.js'
import { startProduct } from './product.js'
import { reasonOf } from './reason.js'
import { readLauncherSettings } from './settings.js'
import { welcome } from './welcome.js'

const started = Date.now()
const say = (line: string): void => console.log(`${((Date.now() - started) / 1000).toFixed(1)} s  ${line}`)

try {
  await run()
  process.exit(0) // what is still open then is not worth waiting for
} catch (err) {
  console.error(`cannot start: ${reasonOf(err)}`)
  process.exit(1)
}

async function run(): Promise<void> {
  const { help, scale } = readArguments(process.argv.slice(2))
  if (help) return console.log(usage)
  const settings = readLauncherSettings(process.env)
  const signal = firstSignal()
  // before the product runs, the end of this process is enough: all others end with it
  const product = await Promise.race([startProduct(settings, scale, say), signal])
  if (typeof product === 'string') process.exit(130)
  console.log(await welcome(settings, product))
  say(`${await signal}, stopping`)
  await product.stop()
  say('stopped')
}

/** npm and the terminal may both pass on one and the same Ctrl-C, so a second signal means nothing. */
function firstSignal(): Promise<string> {
  return new Promise((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => resolve(signal))
  })
}
