import { runProgram } from '@overlay/process'
import { ownProcess } from '@overlay/process/component'
import { runIdentity } from './run.js'

await runProgram('identity', () =>
  runIdentity(process.env, `${import.meta.dirname}/../migrations`, ownProcess),
)
