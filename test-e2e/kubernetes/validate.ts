import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { pythonWith } from '../interop/python.js'

const run = promisify(execFile)

const requirements = [
  'kubernetes-validate==1.37.0',
  'attrs==26.1.0',
  'importlib_resources==7.1.0',
  'jsonschema==4.26.0',
  'jsonschema-specifications==2025.9.1',
  'packaging==26.3',
  'PyYAML==6.0.3',
  'referencing==0.37.0',
  'rpds-py==2026.9.1',
  'typing_extensions==4.16.0',
] as const

/** The interpreter that has the validator. */
export const validator = (): Promise<string> => pythonWith(...requirements)

/** Compares objects with the published schemas of a version of Kubernetes. Returns the lines about what does not fit. */
export async function validate(text: string, version: string): Promise<readonly string[]> {
  const python = await validator()
  const work = await mkdtemp(join(tmpdir(), 'overlay-test-'))
  try {
    const file = join(work, 'objects.yaml')
    await writeFile(file, text)
    const args = ['--strict', '-k', version, file]
    const { stdout } = await run(join(python, '../kubernetes-validate'), args, { maxBuffer: 1 << 24 }).catch(
      (err: { stdout: string }) => err, // it exits with 1 if something does not fit
    )
    const lines = stdout.split('\n').filter(Boolean)
    if (!lines.some((line) => line.startsWith('INFO'))) throw new Error(`nothing was compared: ${stdout}`)
    return lines.filter((line) => !line.startsWith('INFO')).map((line) => line.replace(`${file} `, ''))
  } finally {
    await rm(work, { recursive: true })
  }
}
