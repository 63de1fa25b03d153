import { ownProcess } from '@overlay/platform/part'
import { runProgram } from '@overlay/platform/process'
import { runIdentity } from './run.js'

await runProgram('identity', () =>
  runIdentity(process.env, `${import.meta.dirname}/../migrations`, ownProcess),
)
