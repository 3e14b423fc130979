/** Picture draws the newest picture of a page on a canvas; those that come while one is decoded replace one another. */
export class Picture {
  width = 0; // of the page, in its own pixels
  height = 0;
  #waiting: ArrayBuffer | undefined;
  #busy = false;

  constructor(readonly canvas: HTMLCanvasElement) {}

  /** draw shows a JPEG picture. */
  draw(jpeg: ArrayBuffer): void {
    this.#waiting = jpeg;
    if (!this.#busy) void this.#next();
  }

  async #next(): Promise<void> {
    this.#busy = true;
    while (this.#waiting !== undefined) {
      const jpeg = this.#waiting;
      this.#waiting = undefined;
      const image = await createImageBitmap(new Blob([jpeg], { type: "image/jpeg" })).catch(() => undefined);
      if (image === undefined) continue; // what is no picture is not shown
      if (this.canvas.width !== image.width || this.canvas.height !== image.height) {
        this.canvas.width = image.width;
        this.canvas.height = image.height;
      }
      this.canvas.getContext("2d")?.drawImage(image, 0, 0);
      image.close();
      this.canvas.dataset["shown"] = "yes";
    }
    this.#busy = false;
  }

  /** place returns where on the page a mouse event is. */
  place(event: MouseEvent): { x: number; y: number } {
    const box = this.canvas.getBoundingClientRect();
    const at = (offset: number, shown: number, size: number): number => Math.round(Math.min(Math.max(offset / shown, 0), 1) * size * 10) / 10;
    return { x: at(event.clientX - box.left, box.width, this.width), y: at(event.clientY - box.top, box.height, this.height) };
  }
}
