import { vitePreprocess } from '@sveltejs/vite-plugin-svelte'

export default {
  preprocess: vitePreprocess(),
  compilerOptions: {
    runes: true,
    discloseVersion: false,
    // Short scope names, which would otherwise be a tenth of the first page.
    cssHash: ({ hash, css }) => 's' + Number.parseInt(hash(css).replace(/[^0-9a-z]/g, ''), 36).toString(36).slice(-4),
  },
}
